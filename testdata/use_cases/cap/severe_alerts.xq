(: A warning app: severe and extreme alerts of CAP 1.2 in the shape of the app. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";

for $info in /cap:alert[cap:status = "Actual"]/cap:info
where $info/cap:severity = ("Severe") or $info/cap:severity = "Extreme"
return
  <warning id="{ $info/../cap:identifier }" severity="{ lower-case($info/cap:severity) }" urgent="{ $info/cap:urgency = 'Immediate' }">
    <what>{ normalize-space($info/cap:event) }</what>
    { for $area in $info/cap:area return <where polygons="{ count($area/cap:polygon) }">{ normalize-space($area/cap:areaDesc) }</where> }
    <until>{ data($info/cap:expires) }</until>
  </warning>
