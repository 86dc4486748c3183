(: A ticker: headline, urgency and time of every usable item, in no namespace. :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";

for $item in //newsItem
where $item/itemMeta/pubStatus/@qcode = "stat:usable" or not($item/itemMeta/pubStatus)
return
  <item xmlns="" guid="{ $item/@guid }" version="{ $item/@version }">{
    $item/@xml:lang,
    <time>{ data($item/itemMeta/*:versionCreated) }</time>,
    for $headline in $item//*:headline return <headline>{ normalize-space($headline) }</headline>
  }</item>
