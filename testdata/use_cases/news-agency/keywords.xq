(: A filter downstream: every keyword, whatever the format calls it, as one flat list. :)
<keywords>{
  for $k in //keyword/@key | //tobject.subject/@tobject.subject.type | //*:keyword[not(@key)] | //*:slugline
  let $text := normalize-space($k)
  where string-length($text) > 0
  order by lower-case($text)
  return <k>{ $text }</k>
}</keywords>
