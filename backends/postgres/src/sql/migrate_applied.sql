-- What has been applied.
select version, checksum, min_reader
from leasehold.schema
order by version
