(: Purchasing: items of orders and invoices, dearest line first, three at most. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";

<items of="{ /*/cbc:ID }">{
  (for $line in //*[cac:Item][cbc:LineExtensionAmount]
   order by number($line/cbc:LineExtensionAmount) descending, string($line/cbc:ID)
   return <item line="{ $line/cbc:ID }">{ $line/cac:Item/cbc:Name, $line/cbc:LineExtensionAmount }</item>,
   ())
}</items>
