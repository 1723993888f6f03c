-- What has been applied.
select version, checksum, min_reader
from leasehold_schema
order by version
