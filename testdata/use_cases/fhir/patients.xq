(: Admission: names and contacts of patients, official names first. :)
declare default element namespace "http://hl7.org/fhir";

for $p in //Patient
return
  <patient xmlns="" id="{ $p/*:id/@value }" gender="{ $p/*:gender/@value }" born="{ $p/*:birthDate/@value }">{
    for $n in $p/*:name
    order by ($n/*:use/@value = "official") descending
    return <name use="{ $n/*:use/@value }">{ string-join(($n/*:given/@value, $n/*:family/@value), " ") }</name>,
    for $t in $p/*:telecom[*:value] return <contact system="{ $t/*:system/@value }">{ string($t/*:value/@value) }</contact>
  }</patient>
