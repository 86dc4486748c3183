(: A pager: urgent items in two formats, as text. :)
<urgent>{
  for $n in //nitf[number((.//urgency/@ed-urg)[1]) <= 3] return string(($n//hl1)[1]),
  for $n in //*:newsItem[number((.//*:urgency)[1]) <= 3] return string(($n//*:headline)[1])
}</urgent>
