(: A guide: named waypoints from north to south. :)
<places>{
  for $w in //*:wpt[*:name != ""] | //*:rtept[*:name != ""]
  order by number($w/@lat) descending, number($w/@lon)
  return <place at="{ $w/@lat },{ $w/@lon }">{ normalize-space($w/*:name) }</place>
}</places>
