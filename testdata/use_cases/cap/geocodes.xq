(: A county: codes of all areas by the name of their list, each once. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";

<codes>{
  for $list in distinct-values(//*:geocode/*:valueName)
  order by $list
  return
    <list name="{ $list }">{
      for $value in distinct-values(//*:geocode[*:valueName = $list]/*:value)
      order by $value
      return <code>{ $value }</code>
    }</list>
}</codes>
