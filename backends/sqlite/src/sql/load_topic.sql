-- Whether a topic keeps the order of its keys. ?1 topic.
select ordered
from leasehold_topics
where name = ?1
