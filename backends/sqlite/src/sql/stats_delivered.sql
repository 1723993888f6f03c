-- How many delivered events are kept, from the listing's index alone.
select count(*) from leasehold_events where state = 'delivered'
