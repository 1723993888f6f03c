-- Adds what the jobs of a crowd were asked to do.
with recursive numbers (i) as (
  select :first union all select i + 1 from numbers where i + 1 < :first + :rows
)
insert into leasehold_requests (job_id, payload, hash, scope)
select unhex(printf('%s8%015x', :prefix, i)),
  printf('{"number":%d,"account":"acct_%012d","action":"thumbnail.render","source":"s3://uploads/%016x/original.jpeg","widths":[160,320,640,1280],"quality":82,"trim":false,"note":"as asked by the owner"}', i, i, i),
  zeroblob(32), ''
from numbers
