(: A campaign: notices with a strategic aim, and which kinds there are in how many lots. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
declare namespace efac = "http://data.europa.eu/p27/eforms-ubl-extension-aggregate-components/1";
declare namespace efbc = "http://data.europa.eu/p27/eforms-ubl-extension-basic-components/1";

<strategic>{
  for $kind in distinct-values(//cbc:ProcurementTypeCode[@listName])
  let $lots := //cac:ProcurementProjectLot[.//cbc:ProcurementTypeCode = $kind]
  where exists($lots)
  order by count($lots) descending, $kind
  return <kind code="{ $kind }" lots="{ count($lots) }">{ string-join($lots/cbc:ID, ",") }</kind>
}</strategic>
