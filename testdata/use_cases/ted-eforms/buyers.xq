(: A directory: the buyers of a notice with all names, in every language there is. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
declare namespace efac = "http://data.europa.eu/p27/eforms-ubl-extension-aggregate-components/1";
declare namespace efbc = "http://data.europa.eu/p27/eforms-ubl-extension-basic-components/1";

<buyers>{
  let $ids := /*/cac:ContractingParty/cac:Party/cac:PartyIdentification/cbc:ID
  for $company in //efac:Organization/efac:Company
  where $company/cac:PartyIdentification/cbc:ID = $ids
  return
    <buyer>{
      $company/cac:PartyName/cbc:Name,
      $company/cac:PostalAddress/cbc:CityName,
      <country>{ string($company/cac:PostalAddress/cac:Country/cbc:IdentificationCode) }</country>
    }</buyer>
}</buyers>
