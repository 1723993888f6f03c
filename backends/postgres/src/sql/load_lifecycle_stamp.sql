-- Tells one set of registered lifecycles from another, for the cache of their parsed forms.
select coalesce(string_agg(concat_ws(' ', name, revision, encode(hash, 'hex')), ','), '')
from leasehold.lifecycles
