(: A map service: one line for a track, with bounds, points and heights. :)
for $track in //*:trk
let $points := $track//*:trkpt
return
  <track name="{ $track/*:name[1] }" points="{ count($points) }" segments="{ count($track/*:trkseg) }">
    <bounds>{
      if ($points) then (min($points/@lat), min($points/@lon), max($points/@lat), max($points/@lon)) else ()
    }</bounds>
    { if ($points/*:ele) then <climb lowest="{ min($points/*:ele) }" highest="{ max($points/*:ele) }"/> else () }
  </track>
