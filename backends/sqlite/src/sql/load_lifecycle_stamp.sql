-- Tells one set of registered lifecycles from another, for the cache of their parsed forms.
select coalesce(group_concat(name || ' ' || revision || ' ' || hex(hash), ','), '')
from leasehold_lifecycles
