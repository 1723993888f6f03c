create table ballast (bytes blob not null);
insert into ballast values (randomblob(30000000)), (randomblob(30000000)), (randomblob(30000000));
