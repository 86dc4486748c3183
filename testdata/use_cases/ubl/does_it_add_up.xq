(: Audit: invoices whose lines do not sum up to what they say, with both sums. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";

for $document in /*[cac:LegalMonetaryTotal/cbc:LineExtensionAmount]
let $lines := sum($document/*[ends-with(local-name(.), "Line")]/cbc:LineExtensionAmount),
    $total := number($document/cac:LegalMonetaryTotal/cbc:LineExtensionAmount)
where round($lines * 100) != round($total * 100)
return <mismatch kind="{ local-name($document) }" lines="{ round($lines * 100) }" total="{ round($total * 100) }"/>
