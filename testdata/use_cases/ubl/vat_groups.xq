(: A tax office: net amounts by category of value added tax. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";

<vat>{
  for $c in distinct-values(//cac:Item/cac:ClassifiedTaxCategory/cbc:ID)
  let $lines := //*[cac:Item/cac:ClassifiedTaxCategory/cbc:ID = $c]
  order by $c
  return
    <category code="{ $c }" lines="{ count($lines) }">{
      round(sum($lines/cbc:LineExtensionAmount) * 100) div 100
    }</category>
}</vat>
