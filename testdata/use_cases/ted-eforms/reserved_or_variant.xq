(: Small enterprises: lots without variants and without a required security, as they are. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
declare namespace efac = "http://data.europa.eu/p27/eforms-ubl-extension-aggregate-components/1";
declare namespace efbc = "http://data.europa.eu/p27/eforms-ubl-extension-basic-components/1";

for $lot in //cac:ProcurementProjectLot
where every $code in $lot//cbc:VariantConstraintCode satisfies $code = "not-allowed"
  and not($lot//cac:RequiredFinancialGuarantee/cbc:GuaranteeTypeCode = "true")
  and ($lot//cbc:SubmissionMethodCode = "required" or $lot//cbc:EndpointID)
return <small-enterprise>{ $lot/cbc:ID, $lot/cac:TenderingTerms/cac:Language }</small-enterprise>
