(: A follower of one event: updates and cancellations with the alerts that they refer to. :)
declare namespace cap = "urn:oasis:names:tc:emergency:cap:1.2";

for $alert in /*:alert[*:msgType = "Update" or *:msgType = "Cancel"]
where some $r in $alert/*:references satisfies string-length(normalize-space($r)) > 0
return <follow-up type="{ $alert/*:msgType }">{ $alert/*:references, $alert/*:info/*:headline }</follow-up>
