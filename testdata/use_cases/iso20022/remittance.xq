(: Accounts receivable: free text and structured references, in the order of the message. :)
for $details in //*:TxDtls[*:RmtInf]
let $info := $details/*:RmtInf
return
  <remittance position="{ count($details/preceding::*:TxDtls) + 1 }">{
    $info/*:Ustrd,
    for $structured in $info/*:Strd
    return <reference type="{ ($structured//*:Cd)[1] }">{ data(($structured//*:Ref)[1]) }</reference>
  }</remittance>
