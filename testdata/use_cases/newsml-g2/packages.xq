(: A page builder: groups of a package with their items, nested as they refer to each other. :)
declare default element namespace "http://iptc.org/std/nar/2006-10-01/";

<package>{
  for $group in //groupSet/group
  return
    <group role="{ $group/@role }" id="{ $group/@id }" items="{ count($group/itemRef) }">{
      for $ref at $position in $group/itemRef
      return <ref n="{ $position }" href="{ $ref/@residref }{ $ref/@href }">{ data($ref/title[1]), data($ref/*:headline[1]) }</ref>
    }</group>
}</package>
