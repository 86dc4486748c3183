(: A register: everybody named in a document, by role. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";

<parties>{
  for $p in /*//*[cac:Party]
  return
    <party role="{ local-name($p) }">{
      ($p/cac:Party/cac:PartyName/cbc:Name, $p/cac:Party/cac:PartyLegalEntity/cbc:RegistrationName)[1],
      $p/cac:Party/cac:PostalAddress/cac:Country/cbc:IdentificationCode
    }</party>
}</parties>
