(: A ward: values of observations with unit and code, in a table. :)
declare default element namespace "http://hl7.org/fhir";

<table xmlns="http://www.w3.org/1999/xhtml">{
  for $o in //*:Observation
  for $value in $o//*:valueQuantity
  return
    <tr class="{ $o/*:status/@value }">
      <td>{ string(($value/ancestor::*[*:code][1]/*:code//*:display/@value)[1]) }</td>
      <td>{ string($value/*:value/@value) }</td>
      <td>{ string($value/*:unit/@value) }</td>
    </tr>
}</table>
