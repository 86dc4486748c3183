(: A monitor: components above five, and nothing else; a message without any is not delivered. :)
declare default element namespace "http://hl7.org/fhir";

<high>{
  for $q in //valueQuantity[number(value/@value) > 5]
  return <q>{ $q/value, $q/unit, $q/parent::*/code/text }</q>
}</high>
