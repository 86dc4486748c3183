(: A bidder: one line for each lot of a contract notice, with title, place and deadline. :)
declare namespace cac = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
declare namespace cbc = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
declare namespace efac = "http://data.europa.eu/p27/eforms-ubl-extension-aggregate-components/1";
declare namespace efbc = "http://data.europa.eu/p27/eforms-ubl-extension-basic-components/1";

for $lot in /*/cac:ProcurementProjectLot
let $project := $lot/cac:ProcurementProject
where $project/cbc:Name
return
  <lot notice="{ /*/cbc:ID }" id="{ $lot/cbc:ID }">
    <title language="{ ($project/cbc:Name/@languageID)[1] }">{ data($project/cbc:Name[1]) }</title>
    { for $code in distinct-values($project//cac:RealizedLocation//cbc:CountrySubentityCode)
      order by $code return <nuts>{ $code }</nuts> }
    { for $deadline in $lot//cac:TenderSubmissionDeadlinePeriod
      return <deadline>{ concat(substring($deadline/cbc:EndDate, 1, 10), "T", substring($deadline/cbc:EndTime, 1, 8)) }</deadline> }
  </lot>
