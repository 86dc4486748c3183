(: Cash management: turnover of a statement by currency and direction. :)
<turnover message="{ (//*:GrpHdr/*:MsgId)[1] }">{
  for $currency in distinct-values(//*:Ntry/*:Amt/@Ccy)
  let $entries := //*:Ntry[*:Amt/@Ccy = $currency],
      $credits := $entries[*:CdtDbtInd = "CRDT"],
      $debits := $entries[*:CdtDbtInd = "DBIT"]
  order by $currency
  return
    <currency code="{ $currency }" entries="{ count($entries) }">
      <in>{ sum($credits/*:Amt) }</in>
      <out>{ sum($debits/*:Amt) }</out>
      <largest>{ max($entries/*:Amt) }</largest>
    </currency>
}</turnover>
