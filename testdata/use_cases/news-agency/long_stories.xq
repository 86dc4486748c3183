(: Editors: stories of five paragraphs or more, first and last, with the text between left out. :)
for $body in //*:body.content | //*:inlineXML
let $p := $body//*:p[string-length(normalize-space(.)) > 0]
where count($p) >= 5
return
  <long paragraphs="{ count($p) }" characters="{ sum(for $x in $p return string-length($x)) }">
    <first>{ $p[1]/node() }</first>
    <skipped>{ count($p) - 2 }</skipped>
    <last>{ $p[last()]/node() }</last>
  </long>
