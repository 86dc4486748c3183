(: One shape for three versions of the vocabulary, whose namespaces differ. :)
<alerts>{
  for $alert in //*:alert
  let $infos := $alert/*:info
  return
    <alert infos="{ count($infos) }">{
      <id>{ normalize-space($alert/*:identifier) }</id>,
      if (empty($infos)) then <empty/> else
        for $info at $i in $infos
        return <info n="{ $i }" language="{ if ($info/*:language) then $info/*:language else 'en-US' }">{ data($info/*:headline) }</info>
    }</alert>
}</alerts>
