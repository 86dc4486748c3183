(: A passenger: situations with their summary and what they affect. :)
declare default element namespace "http://www.siri.org.uk/siri";

for $s in //PtSituationElement | //RoadSituationElement
return
  <disruption number="{ $s/SituationNumber }" severity="{ if ($s/Severity) then $s/Severity else 'unknown' }">
    { $s/Summary[1], $s/Description[1] }
    { for $line in distinct-values($s//LineRef) order by $line return <line>{ $line }</line> }
  </disruption>
