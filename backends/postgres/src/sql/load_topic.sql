-- Whether topics keep the order of their keys. $1 topics.
select name, ordered
from leasehold.topics
where name = any($1)
