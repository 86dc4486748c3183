(: Mountaineers: points above 1000 metres, highest first, ten at most. :)
<high>{
  (for $p in //*:trkpt[number(*:ele) > 1000]
   order by number($p/*:ele) descending, string($p/*:time)
   return $p)[position() < 11]
}</high>
