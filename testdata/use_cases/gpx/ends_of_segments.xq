(: A logbook: first and last point of every segment that has more than one. :)
<ends>{
  for $s at $n in //*:trkseg
  let $p := $s/*:trkpt
  where count($p) > 1
  return <segment n="{ $n }">{ $p[1], $p[last()] }</segment>
}</ends>
