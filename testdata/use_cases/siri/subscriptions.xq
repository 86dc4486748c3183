(: Operations: who asks for what; requests in requests. :)
declare default element namespace "http://www.siri.org.uk/siri";

<requests>{
  for $r in //*[ends-with(local-name(.), "SubscriptionRequest")][InitialTerminationTime]
  order by local-name($r), string($r/SubscriptionIdentifier)
  return <request kind="{ substring-before(local-name($r), 'SubscriptionRequest') }" until="{ $r/InitialTerminationTime }">{ string($r/SubscriptionIdentifier) }</request>
}</requests>
