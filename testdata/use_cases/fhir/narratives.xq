(: A viewer: the narrative alone, XHTML as it is. :)
declare default element namespace "http://hl7.org/fhir";

declare namespace h = "http://www.w3.org/1999/xhtml";
for $text in //text[status/@value = "generated"]
return $text/h:div
