(: Monitoring: answers whose status is false, with the text of the error. :)
declare default element namespace "http://www.siri.org.uk/siri";

<failures>{
  for $status in //Status[. = "false"]
  return <failure in="{ local-name($status/..) }">{ $status/../ErrorCondition, count($status/preceding::Status) }</failure>
}</failures>
