(: The example of the papers, over what agencies send: headline and content of finance stories. :)
for $n in //nitf
where contains(lower-case(string(($n//hl1)[1])), "e") and $n/body/body.content
return <stock_news> {$n/body/body.head/hedline} {$n/body/body.content/p[1]} </stock_news>
