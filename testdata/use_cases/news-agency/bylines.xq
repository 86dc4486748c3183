(: Copyright: who wrote what, with the place, once per author. :)
<bylines>{
  for $author in distinct-values(for $b in //*:byline return normalize-space($b))
  where $author != ""
  order by $author
  return <author name="{ $author }" stories="{ count(//*:byline[normalize-space(.) = $author]) }"/>
}</bylines>
