(: A terminology service: which systems are used, with how many distinct codes. :)
declare default element namespace "http://hl7.org/fhir";

<systems>{
  for $s in distinct-values(//coding/system/@value)
  let $codings := //coding[system/@value = $s]
  order by count(distinct-values($codings/code/@value)) descending, $s
  return
    <system uri="{ $s }" codes="{ count(distinct-values($codings/code/@value)) }" uses="{ count($codings) }"/>
}</systems>
