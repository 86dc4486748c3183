(: Developers: which extensions are in use, by namespace. :)
declare default element namespace "http://www.topografix.com/GPX/1/1";
<extensions>{
  for $uri in distinct-values(for $e in //extensions//* return namespace-uri($e))
  order by $uri
  return
    <namespace uri="{ $uri }">{
      for $name in distinct-values(for $e in //extensions//*[namespace-uri(.) = $uri] return local-name($e))
      order by $name return <element name="{ $name }"/>
    }</namespace>
}</extensions>
