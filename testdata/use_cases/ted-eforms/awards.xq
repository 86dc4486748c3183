(: A market analyst: who won which lot for how much, joined over the identifiers of the notice. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
declare namespace efac = "http://data.europa.eu/p27/eforms-ubl-extension-aggregate-components/1";
declare namespace efbc = "http://data.europa.eu/p27/eforms-ubl-extension-basic-components/1";

<awards notice="{ /*/cbc:ID }">{
  for $tender in //efac:NoticeResult/efac:LotTender[cac:LegalMonetaryTotal]
  for $party in //efac:NoticeResult/efac:TenderingParty[cbc:ID = $tender/efac:TenderingParty/cbc:ID]
  for $winner in //efac:Organization/efac:Company[cac:PartyIdentification/cbc:ID = $party/efac:Tenderer/cbc:ID]
  order by number($tender/cac:LegalMonetaryTotal/cbc:PayableAmount) descending, string($winner/cac:PartyName[1]/cbc:Name[1])
  return
    <award lot="{ $tender/efac:TenderLot/cbc:ID }">
      <winner country="{ $winner//cac:Country/cbc:IdentificationCode }">{ string($winner/cac:PartyName[1]/cbc:Name[1]) }</winner>
      { $tender/cac:LegalMonetaryTotal/cbc:PayableAmount }
    </award>
}</awards>
