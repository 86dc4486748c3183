(: A search engine: plain text and paragraphs of stories in NITF or XHTML inside an item. :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";

for $story in //inlineXML
let $paragraphs := $story//*:p[normalize-space(.) != ""]
where count($paragraphs) > 1
return
  <story xmlns="" paragraphs="{ count($paragraphs) }" length="{ string-length(normalize-space($story)) }">
    <lead>{ normalize-space($paragraphs[1]) }</lead>
    { $paragraphs[last()] }
  </story>
