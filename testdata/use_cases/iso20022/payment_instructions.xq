(: A bank's fraud screen: creditors of payment initiations with at least 1000, largest first. :)
declare namespace screen = "urn:example:screen";
<screen:payments xmlns:screen="urn:example:screen">{
  for $payment in //*:CdtTrfTxInf[number(*:Amt/*:InstdAmt) >= 1000]
  order by number($payment/*:Amt/*:InstdAmt) descending, string($payment/*:Cdtr/*:Nm)
  return
    <screen:payment>
      <screen:creditor>{ normalize-space($payment/*:Cdtr/*:Nm) }</screen:creditor>
      <screen:country>{ data(($payment/*:Cdtr/*:PstlAdr/*:Ctry)[1]) }</screen:country>
      { $payment/*:Amt/*:InstdAmt }
    </screen:payment>
}</screen:payments>
