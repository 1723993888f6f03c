-- Takes away every dead letter behind the store's back.
delete from leasehold_dead_letters;
