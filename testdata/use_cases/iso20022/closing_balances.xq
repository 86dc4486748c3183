(: A dashboard wants closing balances alone; the elements of the statement as they are. :)
<balances>{
  for $statement in //*:Stmt
  where $statement/*:Bal/*:Tp/*:CdOrPrtry/*:Cd = "CLBD"
  return
    <statement id="{ $statement/*:Id }">{
      $statement/*:Acct,
      $statement/*:Bal[*:Tp/*:CdOrPrtry/*:Cd = "CLBD"]
    }</statement>
}</balances>
