(: A newsroom: maps, sounds and other resources, biggest first, sizes in kilobytes. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";

<resources>{
  for $r in //*:resource
  order by number($r/*:size) descending empty least
  return <resource kilobytes="{ if (number($r/*:size) > 0) then round(number($r/*:size) div 1024) else '?' }">{ $r/*:resourceDesc, $r/*:uri }</resource>
}</resources>
