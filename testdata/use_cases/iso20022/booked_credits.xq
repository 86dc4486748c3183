(: Treasury: every booked credit of an account statement or notification, flat, with account and
   references, whatever the version of the message. :)
for $report in //*:Stmt | //*:Ntfctn | //*:Rpt
for $entry in $report/*:Ntry[*:CdtDbtInd = "CRDT"]
where starts-with(string(($entry/*:Sts//text()[normalize-space(.)])[1]), "BOOK")
return
  <credit account="{($report/*:Acct/*:Id/*:IBAN, $report/*:Acct/*:Id/*:Othr/*:Id)[1]}"
          currency="{$entry/*:Amt/@Ccy}" amount="{$entry/*:Amt}">
    <booked>{ data($entry/*:BookgDt/*:Dt), data($entry/*:BookgDt/*:DtTm) }</booked>
    { for $ref in distinct-values($entry//*:EndToEndId) order by $ref return <reference>{ $ref }</reference> }
  </credit>
