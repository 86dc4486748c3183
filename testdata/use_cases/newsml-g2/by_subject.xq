(: An archive: subjects with how often they occur, most frequent first. :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";

<subjects>{
  for $code in distinct-values(//subject/@qcode)
  let $all := //subject[@qcode = $code]
  order by count($all) descending, $code
  return <subject qcode="{ $code }" count="{ count($all) }">{ $all[1]/name }</subject>
}</subjects>
