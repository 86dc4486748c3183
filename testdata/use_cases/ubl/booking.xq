(: Bookkeeping: what an invoice has to be booked with; no lines. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";

declare namespace inv = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2";
for $i in //inv:Invoice
return
  <booking number="{ $i/cbc:ID }" date="{ $i/cbc:IssueDate }">
    <from>{ string(($i/cac:AccountingSupplierParty//cac:PartyName/cbc:Name, $i/cac:AccountingSupplierParty//cbc:RegistrationName)[1]) }</from>
    { $i/cac:LegalMonetaryTotal/cbc:PayableAmount }
    { for $t in $i/cac:TaxTotal/cac:TaxSubtotal
      order by number($t/cac:TaxCategory/cbc:Percent) empty least
      return <tax percent="{ $t/cac:TaxCategory/cbc:Percent }">{ $t/cbc:TaxAmount/node() }</tax> }
  </booking>
