(: A display at a stop: departures with delay, by expected time. :)
declare default element namespace "http://www.siri.org.uk/siri";

<board>{
  for $visit in //MonitoredStopVisit
  let $journey := $visit/MonitoredVehicleJourney, $call := $journey/MonitoredCall
  order by string($call/ExpectedDepartureTime), string($call/AimedDepartureTime)
  return
    <departure line="{ $journey/LineRef }" to="{ ($journey/DestinationName)[1] }">{
      <aimed>{ data($call/AimedDepartureTime) }</aimed>,
      if ($call/ExpectedDepartureTime != $call/AimedDepartureTime)
      then <expected>{ data($call/ExpectedDepartureTime) }</expected>
      else ()
    }</departure>
}</board>
