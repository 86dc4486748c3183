(: A map: where vehicles are, in no namespace. :)
declare default element namespace "http://www.siri.org.uk/siri";

for $v in //VehicleActivity
let $j := $v/MonitoredVehicleJourney
where $j/VehicleLocation
return
  <vehicle xmlns="" line="{ $j/*:LineRef }" ref="{ $j/*:VehicleRef }">{
    data($j/*:VehicleLocation/*:Longitude), data($j/*:VehicleLocation/*:Latitude)
  }</vehicle>
