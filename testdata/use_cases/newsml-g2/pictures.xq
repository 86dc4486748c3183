(: A picture desk: renditions of pictures and video that are wide enough, widest first. :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";

<renditions>{
  for $content in //remoteContent[number(@width) >= 400]
  order by number($content/@width) descending, string($content/@href)
  return <rendition xmlns="http://iptc.org/std/nar/2006-10-01/">{
    $content/@href, $content/@width, $content/@height, $content/@rendition
  }</rendition>
}</renditions>
