(: Operations: rejected transactions of a status report, with the reason; nothing if none is. :)
declare default element namespace "urn:iso:std:iso:20022:tech:xsd:pain.002.001.03";
for $transaction in //*:TxInfAndSts
where $transaction/*:TxSts = "RJCT"
return
  <rejected xmlns="" id="{ $transaction/*:OrgnlEndToEndId }">{
    if ($transaction/*:StsRsnInf/*:Rsn)
    then string-join($transaction/*:StsRsnInf/*:Rsn/*, " ")
    else "no reason"
  }</rejected>
